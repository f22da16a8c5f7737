"""What has to be done: the job of a run, and the inputs that its models are applied to."""
