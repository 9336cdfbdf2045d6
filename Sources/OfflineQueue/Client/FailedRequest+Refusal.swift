internal import ClientCore
internal import Foundation

extension FailedRequest {
    /// Ends the request with its own error, because the queue cannot take it over.
    ///
    /// - Parameter cause: The reason, which becomes ``ClientCore/Request/queueError``.
    func refuse(_ cause: any Error) {
        fail(with: error.with(underlying: cause), refusal: cause)
    }
}

extension Error {
    /// Returns the error with the cause for which the queue could not take over the request. Only a `URLError` can
    /// carry it, under `NSUnderlyingErrorKey`.
    fileprivate func with(underlying cause: any Error) -> any Error {
        switch self {
        case is UnsentRequest: return cause
        case let error as URLError:
            var userInfo = error.errorUserInfo
            userInfo[NSUnderlyingErrorKey] = cause
            return URLError(error.code, userInfo: userInfo)
        default: return self
        }
    }
}
