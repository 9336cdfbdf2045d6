internal import Foundation
internal import Synchronization

/// The completion of a question to a retrier. It is answered exactly once. If the retrier releases the completion
/// without calling it, the answer is `nil`, so that the request ends anyway.
final class RetryCompletion: Sendable {
    private let answer: Mutex<(@Sendable (Duration?) -> Void)?>

    /// - Parameter answer: Called once, on any thread, with the delay before the next attempt, or `nil` for no
    ///   retry.
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
