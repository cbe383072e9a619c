"""Two files held against each other: what appeared, vanished, changed count or got slower."""
