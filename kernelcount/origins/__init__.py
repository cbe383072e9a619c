"""Where what ran comes from: whose line, which op, which call on paper, which eager kernels."""
