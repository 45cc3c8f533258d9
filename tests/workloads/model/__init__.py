"""What the workloads must return, computed again in Python, without looking at what a VM says."""
