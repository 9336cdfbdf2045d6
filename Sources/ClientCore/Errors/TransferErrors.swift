package import Foundation
internal import Glibc
public import NetwatchTransport

/// The user-info key of the ``TransferFailure`` in a `URLError`.
private let transferFailureKey = "netwatch.transferFailure"

extension Error {
    /// The details of a failed transfer: libcurl's code, the system's error number, the phase that the transfer had
    /// reached and the number of bytes sent. `nil` if the error does not come from a transfer.
    public var transferFailure: TransferFailure? {
        if let failure = self as? TransferFailure { return failure }
        if case .serverTrustEvaluationFailed(let reason) = self as? AFError { return reason.transferFailure }
        if let error = self as? URLError {
            return error.errorUserInfo[transferFailureKey] as? TransferFailure
        }
        return (self as NSError).userInfo[transferFailureKey] as? TransferFailure
    }
}

extension TransferFailure {
    /// Returns the `URLError` that the request's handlers receive.
    ///
    /// - Parameters:
    ///   - url: The URL of the failed transfer.
    ///   - isOffline: Whether the kernel had no route to the target. Default: `nil`, unknown; the system's error number
    ///     decides.
    func urlError(for url: URL?, isOffline: Bool? = nil) -> URLError {
        URLError(self, URLError.code(of: self, isOffline: isOffline), url: url)
    }
}

extension URLError {
    /// Creates an error with a message, which both ``localizedDescription`` and the error's text contain. Foundation's
    /// text of an error contains only the failure reason, or `(null)` without one.
    package init(_ code: URLError.Code, message: String, userInfo: [String: Any] = [:]) {
        let texts = [NSLocalizedDescriptionKey: message, NSLocalizedFailureReasonErrorKey: message]
        self.init(code, userInfo: userInfo.merging(texts) { _, text in text })
    }

    /// The error of a request that the program has cancelled.
    static var requestCancelled: URLError { URLError(.cancelled, message: "the request was cancelled") }

    /// The error of a request without a URL.
    static var missingURL: URLError { URLError(.badURL, message: "the request has no URL") }

    /// The error of a body stream that would have to be read a second time.
    static var streamExhausted: URLError {
        let message = "the body's stream was already read, and cannot be read again"
        return URLError(.requestBodyStreamExhausted, message: message)
    }

    /// Creates the error with the failure in its user info.
    ///
    /// - Parameter url: The URL of the failed transfer. `failingURL` is this URL without secrets.
    fileprivate init(_ failure: TransferFailure, _ code: URLError.Code, url: URL?) {
        let message =
            code == .notConnectedToInternet
            ? "no route to `\(url?.host ?? "")`: \(failure.message)" : failure.message
        var userInfo: [String: Any] = [transferFailureKey: failure]
        // Foundation's text of an error contains its user info.
        userInfo[NSURLErrorFailingURLErrorKey] = url.flatMap { URL(string: $0.textWithoutSecrets) }
        self.init(code, message: message, userInfo: userInfo)
    }

    /// Returns the `URLError` code that is closest to libcurl's code (`libcurl-errors(3)`).
    fileprivate static func code(of failure: TransferFailure, isOffline: Bool?) -> URLError.Code {
        if isOffline == true { return .notConnectedToInternet }
        switch failure.clientCertificateRefusal {
        case .required?: return .clientCertificateRequired
        case .rejected?: return .clientCertificateRejected
        case nil: break
        }
        return switch failure.code {
        // CURLE_UNSUPPORTED_PROTOCOL: before anything is sent, the URL's scheme; later, the server's response.
        case 1: failure.phase == .prepare ? .unsupportedURL : .badServerResponse
        case 3: .badURL
        case 6: .cannotFindHost
        // The kernel has a route. The next machine on it is silent, or a router has no route.
        case 7 where isOffline == false: .cannotConnectToHost
        case 7: Self.isOffline(failure.osErrno) ? .notConnectedToInternet : .cannotConnectToHost
        case 8: .badServerResponse
        case 16, 18, 52, 55, 56, 92, 95, 96: .networkConnectionLost
        case 28: .timedOut
        case 35: .secureConnectionFailed
        case 42: .cancelled
        case 47: .httpTooManyRedirects
        case 58: .clientCertificateRequired
        case 61: .cannotDecodeContentData
        case 63: .dataLengthExceedsMaximum
        case 65: .requestBodyStreamExhausted
        case 67: .userAuthenticationRequired
        case 100: .cannotParseResponse
        default: .unknown
        }
    }

    /// Returns whether the error number means that packets could not leave this machine.
    private static func isOffline(_ errno: Int32) -> Bool {
        [ENETUNREACH, ENETDOWN, EHOSTUNREACH].contains(errno)
    }
}

/// The error of a request that must not be sent to an origin. Nothing was sent there.
package struct OriginNotPermitted: Error {
    package let origin: TransferOrigin
}
