/// What a write is for.
enum WritePurpose {
  case storing
}
