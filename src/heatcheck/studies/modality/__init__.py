"""Study: do maps of several modalities reflect each one's importance and mark the lesion?"""
