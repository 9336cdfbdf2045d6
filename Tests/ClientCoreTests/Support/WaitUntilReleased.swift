/// Waits until a weakly referenced object is released, which no event reports.
///
/// Returns early if the task is cancelled. If the object is never released, the suite's time limit fails the test.
func waitUntilReleased(_ object: () -> AnyObject?) async {
    while object() != nil, !Task.isCancelled { await Task.yield() }
}
