internal import Foundation
internal import NetwatchTransport

/// The header fields of a curl command.
struct CurlFields {
    /// The fields, sorted by name.
    private let fields: [TransferRequest.Header]

    /// Merges header fields. The request's fields override the cookies and the session's fields.
    ///
    /// - Parameters:
    ///   - session: The session's fields.
    ///   - request: The request's own fields.
    ///   - cookies: The value of `Cookie` from the cookie storage.
    /// - Returns: `nil` if a field's name is not a token, or if its value contains a line break or NUL.
    init?(merging session: HTTPHeaders, _ request: HTTPHeaders?, _ cookies: String?) {
        var fields: [String: TransferRequest.Header] = [:]
        let stored = cookies.map { ["Cookie": $0] } ?? [:]
        for headers in [session, stored, request ?? [:]] {
            // If two names differ only in case, the later field replaces the earlier one. Because the fields are
            // sorted, every run keeps the same field.
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

    /// The value of the field with this name. The case of the name is ignored.
    subscript(name: String) -> String? {
        fields.first { $0.isNamed(name) }?.value
    }

    /// Returns the options that set the fields.
    ///
    /// - Parameter hasBody: Whether the request has a body. If it has one but no `Content-Type`, an option prevents
    ///   curl from adding the `Content-Type` of a form.
    func options(_ secrets: CurlSecrets, hasBody: Bool) -> [String] {
        var options = fields.filter { $0.isNamed("Cookie") }.map { Self.cookieOption(secrets.field($0)) }
        options += fields.filter { !$0.isNamed("Cookie") }.map { Self.option(secrets.field($0)) }
        if hasBody, self["Content-Type"] == nil { options.append("-H 'Content-Type:'") }
        // curl sends this field unchanged. `--compressed` makes curl decode the response before printing it.
        if self["Accept-Encoding"] != nil { options.append("--compressed") }
        return options
    }

    /// Returns a `-b` option for a `Cookie` field. If the value has no `=` or begins with `@`, returns an `-H` option
    /// instead: curl would take the argument of `-b` for a file name.
    private static func cookieOption(_ field: TransferRequest.Header) -> String {
        let bytes = field.value.utf8
        guard bytes.contains(UInt8(ascii: "=")), bytes.first != UInt8(ascii: "@") else {
            return option(field)
        }
        return "-b " + Shell.quoted(field.value)
    }

    /// Returns an `-H` option. For an empty value, a semicolon replaces the colon: after a colon without a value, curl
    /// would drop the field.
    private static func option(_ field: TransferRequest.Header) -> String {
        "-H " + Shell.quoted(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
    }
}
