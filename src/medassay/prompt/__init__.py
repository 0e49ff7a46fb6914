"""Templates and rendering: item → messages."""
