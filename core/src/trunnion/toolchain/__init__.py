"""What is installed on this machine, found out without initialising a device."""
