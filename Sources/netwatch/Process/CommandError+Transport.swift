internal import ClientCore

extension CommandError {
    /// The failure of every command that sends HTTP requests, if libcurl uses another major version of OpenSSL than
    /// this program; `nil` otherwise.
    ///
    /// The transfers would fail with the same message. A command that checks this first fails before it changes
    /// anything, and with a status after which systemd does not start the service again.
    static var unusableTransport: CommandError? {
        SessionManager.transportConflict.map {
            CommandError(
                .unusableStore,
                $0,
                hint: "install a libcurl and a netwatch that use the same major version of OpenSSL"
            )
        }
    }

    /// - Throws: ``unusableTransport``, if it is not `nil`.
    static func requireUsableTransport() throws(CommandError) {
        if let unusableTransport { throw unusableTransport }
    }
}
