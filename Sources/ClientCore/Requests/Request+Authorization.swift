internal import Foundation

extension Request {
    /// Returns the header field for Basic authentication (RFC 7617), with user and password in UTF-8.
    ///
    /// The field reveals the password to everyone who can read it, so send it over `https` only.
    ///
    /// - Parameters:
    ///   - user: The user. It must not contain a colon, because the password begins after the first colon.
    ///   - password: The password.
    /// - Returns: The field, or `nil` if the user contains a colon or either text contains a control character
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
