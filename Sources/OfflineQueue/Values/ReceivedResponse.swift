package import Foundation

/// A response, as an ``Expectation`` evaluates it to decide whether the request is delivered.
package struct ReceivedResponse: Sendable {
    package let status: Int
    package let headers: [(String, String)]
    /// The received part of the body. It is incomplete if a limit or the end of the connection cut it.
    package let body: Data
    /// Removes the request's secrets from messages that quote the response.
    package var redactor = Redactor.none

    package init(status: Int, headers: [(String, String)] = [], body: Data = Data()) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// Returns the first value of a header field; `nil` if the field is missing.
    ///
    /// - Parameter name: The name in lower case.
    func value(of name: String) -> String? { values(of: name).first }

    /// Returns the values of all header fields with this name, which must be in lower case.
    func values(of name: String) -> [String] {
        headers.lazy.filter { $0.0.lowercased() == name }.map(\.1)
    }
}
