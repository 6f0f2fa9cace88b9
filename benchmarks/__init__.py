"""What Headrace costs, measured against what others cost on the same machine in the same minutes."""
