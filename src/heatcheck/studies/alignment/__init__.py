"""Study: is a poor map the method's fault or the model's?"""
