/// Waits until a condition holds that no event announces, for example that an object was released.
///
/// Returns early if the task is cancelled. If the condition never holds, the suite's time limit fails the test.
func waitUntil(_ isSatisfied: () -> Bool) async {
    while !isSatisfied(), !Task.isCancelled { await Task.yield() }
}
