"""Tools and agents: functions with schemas, registries, isolation."""
