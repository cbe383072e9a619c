"""Files -> rows: Kineto's traces and our own saved captures. No torch."""
