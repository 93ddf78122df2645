"""How a chest film with its findings is drawn."""
