internal import ClientCore
package import Foundation
package import FoundationNetworking

extension URLRequest {
    /// Creates a request from its parts. Fields of the same name are joined with a comma.
    ///
    /// - Parameters:
    ///   - headers: The header lines.
    ///   - body: The body; `nil` for none.
    /// - Throws: ``QueueError`` with `invalidURL` if Foundation does not accept the URL.
    package init(
        method: String,
        url text: String,
        headers: [QueueRequest.Header],
        body: Data?
    ) throws(QueueError) {
        guard let url = URL(string: text) else {
            let shown = quoted(RedactedURL.text(ofUnchecked: text))
            throw QueueError(.invalidURL, "the URL \(shown) is not valid")
        }
        self.init(url: url)
        httpMethod = method
        httpBody = body
        for header in headers { addValue(header.value, forHTTPHeaderField: header.name) }
    }
}
