internal import Foundation
internal import Synchronization

/// The owner of the completion closure that a ``RequestRetrier`` calls with its decision.
///
/// The first call of the closure is the answer; later calls are ignored. If the retrier releases the closure without
/// calling it, the answer is `nil` (no retry), so that the request ends anyway.
final class RetryCompletion: Sendable {
    private let answer: Mutex<(@Sendable (Duration?) -> Void)?>

    /// - Parameter answer: Receives the retrier's answer: the delay before the next attempt, or `nil` for no retry.
    ///   Called once, on any thread.
    init(_ answer: @escaping @Sendable (Duration?) -> Void) {
        self.answer = Mutex(answer)
    }

    deinit { take()?(nil) }

    /// The completion closure passed to the retrier.
    var closure: RequestRetryCompletion {
        { shouldRetry, delay in self.take()?(shouldRetry ? Duration(seconds: delay) : nil) }
    }

    private func take() -> (@Sendable (Duration?) -> Void)? {
        answer.withLock { answer in
            defer { answer = nil }
            return answer
        }
    }
}
