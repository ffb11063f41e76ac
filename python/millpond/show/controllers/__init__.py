"""What people see of controllers: the list, one explained, its waits drawn."""
