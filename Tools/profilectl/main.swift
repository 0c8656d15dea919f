print("profilectl")
