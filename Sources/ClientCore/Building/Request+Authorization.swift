internal import Foundation

extension Request {
    /// The header field of HTTP's Basic authentication (RFC 7617), with user and password in UTF-8.
    ///
    /// Whoever reads the field knows the password: send it over `https` only.
    ///
    /// - Parameters:
    ///   - user: The user. A colon cannot be part of it, because the password begins after the first one.
    ///   - password: The password.
    /// - Returns: The field, or `nil` when there is a colon in the user or a control character in either
    ///   (RFC 7617 §2).
    public static func authorizationHeader(
        user: String,
        password: String
    ) -> (key: String, value: String)? {
        let credentials = "\(user):\(password)"
        guard !user.utf8.contains(UInt8(ascii: ":")),
            credentials.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f })
        else { return nil }
        return ("Authorization", "Basic \(Data(credentials.utf8).base64EncodedString())")
    }
}
