"""What is concluded of captures: which is faster, beyond noise, and what holds one back."""
