internal import Foundation
internal import Glibc
public import NetwatchTransport

/// The user-info key of the ``TransferFailure`` in a `URLError`.
private let transferFailureKey = "netwatch.transferFailure"

extension Error {
    /// The details of a failed transfer: libcurl's code, the system's error number, the phase that it reached and the
    /// number of bytes sent. `nil` for errors that are not transfer errors.
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
    /// Returns the `URLError` for the request's handlers.
    ///
    /// - Parameters:
    ///   - url: The URL that failed.
    ///   - isOffline: Whether there was no route to the target. Default `nil`: decided by the system's error number.
    func urlError(for url: URL?, isOffline: Bool? = nil) -> URLError {
        URLError(self, URLError.code(of: self, isOffline: isOffline), url: url)
    }
}

extension URLError {
    /// - Parameter url: The URL that failed.
    fileprivate init(_ failure: TransferFailure, _ code: URLError.Code, url: URL?) {
        var userInfo: [String: Any] = [
            transferFailureKey: failure,
            NSLocalizedDescriptionKey: code == .notConnectedToInternet
                ? "no route to `\(url?.host ?? "")`: \(failure.message)" : failure.message,
        ]
        userInfo[NSURLErrorFailingURLErrorKey] = url
        self.init(code, userInfo: userInfo)
    }

    /// Maps `libcurl-errors(3)` to the closest `URLError` code.
    fileprivate static func code(of failure: TransferFailure, isOffline: Bool?) -> URLError.Code {
        if isOffline == true { return .notConnectedToInternet }
        switch failure.clientCertificateRefusal {
        case .required?: return .clientCertificateRequired
        case .rejected?: return .clientCertificateRejected
        case nil: break
        }
        return switch failure.code {
        // Before anything was sent, the URL is invalid; afterwards, the response is not HTTP.
        case 1: failure.phase == .prepare ? .unsupportedURL : .badServerResponse
        case 3: .badURL
        case 6: .cannotFindHost
        // The kernel has a route, but a neighbour or router on it does not answer or has no route itself.
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

    /// Returns whether the packets could not leave this machine.
    private static func isOffline(_ errno: Int32) -> Bool {
        [ENETUNREACH, ENETDOWN, EHOSTUNREACH].contains(errno)
    }
}
