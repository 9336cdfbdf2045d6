internal import NetwatchEventLoop

/// Returns the earlier of two instants; `nil` if both are `nil`.
///
/// It runs for every kernel notification, so it does not allocate an array.
func earliest(_ first: BootInstant?, _ second: BootInstant?) -> BootInstant? {
    guard let first, let second else { return first ?? second }
    return min(first, second)
}
