"""What a run is asked for: settings, their TOML, the models by name, presets."""
