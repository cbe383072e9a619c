"""One question each, asked in a run of its own or watched while the user's code runs."""
