internal import Foundation
internal import Synchronization

/// A retrier's question, answered once: by the first call, or by the retrier's letting go of it, because a
/// request whose retrier forgets it has to end all the same.
final class RetryQuestion: Sendable {
    private let answer: Mutex<(@Sendable (Duration?) -> Void)?>

    /// - Parameter answer: Called once, on any thread, with the delay before the next attempt or `nil`.
    init(_ answer: @escaping @Sendable (Duration?) -> Void) {
        self.answer = Mutex(answer)
    }

    deinit { take()?(nil) }

    /// What the retrier is given.
    var completion: RequestRetryCompletion {
        { shouldRetry, delay in self.take()?(shouldRetry ? Duration(seconds: delay) : nil) }
    }

    private func take() -> (@Sendable (Duration?) -> Void)? {
        answer.withLock { answer in
            defer { answer = nil }
            return answer
        }
    }
}
