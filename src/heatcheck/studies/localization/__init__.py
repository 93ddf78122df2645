"""Study: do the maps point where the radiologists do?"""
