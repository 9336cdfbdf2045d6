internal import Foundation
internal import FoundationNetworking

extension OfflineOptions {
    /// Returns why a queue can never store a request with these options, whatever its body is; `nil` if it can.
    func refusal(of request: URLRequest, hasCredential: Bool) -> QueueError? {
        if hasCredential { return .credentialNotStored }
        do throws(QueueError) {
            _ = try NewRequest(try QueueRequest(request, body: .data(Data())), options: enqueue)
            return nil
        } catch {
            return error
        }
    }
}

extension QueueError {
    fileprivate static var credentialNotStored: QueueError {
        QueueError(
            .secretHeader,
            "the credentials of `authenticate` are not stored; register them with the queue and name them in "
                + "`EnqueueOptions.credential`"
        )
    }
}
