"""Study: the model is made to rely on a planted patch; do the methods find it?"""
