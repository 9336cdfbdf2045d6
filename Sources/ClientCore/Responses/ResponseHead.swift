internal import Foundation
internal import FoundationNetworking
internal import NetwatchTransport

/// The head of a response as Foundation describes it.
typealias LazyResponse = LazyValue<(url: URL, head: TransferHead), HTTPURLResponse?>

/// The head of a response, and the URL of the hop that received it.
struct ResponseHead: Sendable {
    let head: TransferHead
    let url: URL
    /// The head as an `HTTPURLResponse`. It is created on first access, because creating it takes longer than receiving
    /// many small responses.
    let lazyResponse: LazyResponse

    init(_ head: TransferHead, from url: URL) {
        self.head = head
        self.url = url
        lazyResponse = LazyResponse((url, head)) { source in
            HTTPURLResponse(
                url: source.url,
                statusCode: source.head.status,
                httpVersion: source.head.version,
                headerFields: source.head.joinedFields
            )
        }
    }

    var response: HTTPURLResponse? { lazyResponse.value }

    var status: Int { head.status }

    /// Whether the status says that the response has no content: 204 or 205.
    var hasNoContent: Bool { HTTPURLResponse.hasNoContent(status) }

    /// The values of a field, in the order received.
    func values(of name: String) -> [String] { head.fields.values(of: name) }
}

extension TransferHead {
    /// The fields as a dictionary. The values of fields with the same name are joined with a comma (RFC 9110 §5.3). The
    /// case of names is ignored.
    fileprivate var joinedFields: [String: String] {
        var fields: [String: String] = [:]
        var names: [String: String] = [:]
        for header in headers {
            let name = names[header.name.lowercased(), default: header.name]
            names[header.name.lowercased()] = name
            fields[name] = fields[name].map { "\($0), \(header.value)" } ?? header.value
        }
        return fields
    }
}
