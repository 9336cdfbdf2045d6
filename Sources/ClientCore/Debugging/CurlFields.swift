internal import Foundation
internal import NetwatchTransport

/// The header fields of a curl command.
struct CurlFields {
    /// Sorted by name.
    private let fields: [TransferRequest.Header]

    /// - Returns: `nil` if a field's name is not a token, or if its value contains a line break or NUL.
    init?(merging session: HTTPHeaders, _ request: HTTPHeaders?, _ cookies: String?) {
        var fields: [String: TransferRequest.Header] = [:]
        let stored = cookies.map { ["Cookie": $0] } ?? [:]
        for headers in [session, stored, request ?? [:]] {
            // Sorted, so that of two names that differ only in case the same one always wins.
            for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
                fields[name.lowercased()] = .init(name, Self.trimmed(value))
            }
        }
        guard fields.values.allSatisfy(Self.isSendable) else { return nil }
        self.fields = fields.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Removes the surrounding white space, which is not part of a value (RFC 9110 §5.5).
    private static func trimmed(_ value: String) -> String {
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
        let end = value.unicodeScalars.reversed().drop(while: isSpace)
        return String(String.UnicodeScalarView(end.reversed().drop(while: isSpace)))
    }

    private static func isSendable(_ field: TransferRequest.Header) -> Bool {
        HTTPToken.isValid(field.name) && field.value.utf8.allSatisfy { $0 != 0 && $0 != 0x0a && $0 != 0x0d }
    }

    /// The value of the field with this name, ignoring case.
    subscript(name: String) -> String? {
        fields.first { $0.isNamed(name) }?.value
    }

    /// - Parameter hasBody: Whether there is a body. Without a `Content-Type`, curl would then add that of a
    ///   form.
    func options(_ secrets: CurlSecrets, hasBody: Bool) -> [String] {
        // Cookies come first.
        var options = fields.filter { $0.isNamed("Cookie") }.map { Self.cookieOption(secrets.field($0)) }
        options += fields.filter { !$0.isNamed("Cookie") }.map { Self.option(secrets.field($0)) }
        if hasBody, self["Content-Type"] == nil { options.append("-H 'Content-Type:'") }
        // curl sends the field as given. With `--compressed` it decodes the response before printing it.
        if self["Accept-Encoding"] != nil { options.append("--compressed") }
        return options
    }

    /// Returns a `-b` option, or `-H` if curl would take the value for a file name: without `=`, or starting
    /// with `@`.
    private static func cookieOption(_ field: TransferRequest.Header) -> String {
        let bytes = field.value.utf8
        guard bytes.contains(UInt8(ascii: "=")), bytes.first != UInt8(ascii: "@") else {
            return option(field)
        }
        return "-b " + Shell.quoted(field.value)
    }

    /// Returns an `-H` option. curl drops a field with nothing after the colon; a semicolon instead sends it
    /// empty.
    private static func option(_ field: TransferRequest.Header) -> String {
        "-H " + Shell.quoted(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
}
