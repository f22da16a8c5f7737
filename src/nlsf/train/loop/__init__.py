"""The training loop: many models as one, in one or many processes."""
