"""Maps on wrong answers: what they show, and whether anything known without the truth warns."""
