internal import Foundation
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
    /// Creates the error with the failure in its user info.
    ///
    /// - Parameter url: The URL of the failed transfer.
    fileprivate init(_ failure: TransferFailure, _ code: URLError.Code, url: URL?) {
        var userInfo: [String: Any] = [
            transferFailureKey: failure,
            NSLocalizedDescriptionKey: code == .notConnectedToInternet
                ? "no route to `\(url?.host ?? "")`: \(failure.message)" : failure.message,
        ]
        userInfo[NSURLErrorFailingURLErrorKey] = url
        self.init(code, userInfo: userInfo)
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
