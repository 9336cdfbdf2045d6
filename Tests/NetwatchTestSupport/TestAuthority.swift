internal import Glibc
internal import NetwatchEventLoop

/// A certificate authority for tests, based on openssl(1). It has a root certificate and an intermediate certificate,
/// and issues further certificates with either. Releasing the last reference removes all files.
package final class TestAuthority: Sendable {
    /// The paths of an issued certificate and its key, both in PEM.
    package struct Issued: Sendable {
        package let certificate: String
        package let key: String
        /// The path of a file with the certificate followed by the intermediate, as a server sends them.
        package let chain: String

        /// The same certificate and key with a `chain` that lacks the intermediate.
        package var alone: Issued { Issued(certificate: certificate, key: key, chain: certificate) }
    }

    /// The authority that signs a certificate.
    package enum Issuer: String, Sendable {
        case root
        case intermediate
    }

    package static let isAvailable = access("/usr/bin/openssl", X_OK) == 0

    private static let only = Result { try TestAuthority() }

    /// Returns the authority that all tests of the process share.
    package static func shared() throws -> TestAuthority { try only.get() }

    package let scratch: ScratchDirectory
    /// The lock for the index of openssl-ca(1), which only one process at a time may write.
    private let index = Lock(())
    /// The arguments with which each certificate was issued, by name.
    ///
    /// Tests that use the same name share its files. So the files must not change while a server reads them.
    private let requests = Lock<[String: [String]]>([:])

    /// The path of the root certificate, in PEM.
    package var root: String { file("root.pem") }
    /// The path of the intermediate certificate, in PEM.
    package var intermediate: String { file("intermediate.pem") }

    package init() throws {
        scratch = try ScratchDirectory()
        try scratch.write(Array(Self.configuration(in: scratch.path).utf8), to: "openssl.cnf")
        try openssl(
            """
            touch root.index intermediate.index; mkdir new
            \(Self.newKey("root"))
            openssl req -x509 -config openssl.cnf -extensions authority -key root.key -subj "/CN=netwatch root" \
                -days 3650 -out root.pem
            """
        )
        try issue("intermediate", "netwatch intermediate", .root, "authority", "", nil)
    }

    /// Issues the certificate of a server.
    ///
    /// - Parameters:
    ///   - name: The name of the certificate's files, and its common name.
    ///   - names: The subject alternative names, such as `DNS:example.com,IP:127.0.0.1`. Default: `nil`, only `name`.
    ///   - issuer: The authority that signs the certificate. Default: the intermediate.
    ///   - validity: The start and end in the format of openssl-ca(1). Default: `nil`, 30 days from now.
    package func server(
        _ name: String,
        for names: String? = nil,
        by issuer: Issuer = .intermediate,
        validity: (from: String, until: String)? = nil
    ) throws -> Issued {
        try issue(name, name, issuer, "server", names ?? "DNS:\(name)", validity)
    }

    /// Issues the certificate of a client.
    package func client(_ name: String) throws -> Issued {
        try issue(name, name, .intermediate, "client", "DNS:\(name)", nil)
    }

    /// Creates a self-signed certificate.
    package func selfSigned(_ name: String) throws -> Issued {
        try openssl(
            """
            \(Self.newKey(name))
            openssl req -x509 -config openssl.cnf -key \(name).key -subj "/CN=\(name)" -days 30 \
                -addext "subjectAltName=DNS:\(name)" -out \(name).pem
            cp \(name).pem \(name).chain
            """
        )
        return issued(name)
    }

    /// Revokes a certificate that the intermediate has issued.
    package func revoke(_ issued: Issued) throws {
        try openssl("openssl ca -config openssl.cnf -name intermediate -revoke \(issued.certificate)")
    }

    /// Writes the intermediate's current revocation list in PEM, and returns the path of the file.
    ///
    /// - Parameters:
    ///   - name: The name of the file.
    ///   - extra: Additional arguments of openssl-ca(1). Default: none.
    package func revocationList(_ name: String, _ extra: String = "") throws -> String {
        try openssl("openssl ca -config openssl.cnf -name intermediate -gencrl \(extra) -out \(name)")
        return file(name)
    }

    /// Writes the current OCSP response for a certificate, and returns the path of the file. A server can staple it.
    package func status(of issued: Issued) throws -> String {
        let response = issued.certificate + ".ocsp"
        try openssl(
            """
            openssl ocsp -index intermediate.index -CA intermediate.pem -rsigner intermediate.pem \
                -rkey intermediate.key -issuer intermediate.pem -cert \(issued.certificate) -ndays 7 \
                -respout \(response)
            """
        )
        return response
    }

    package func file(_ name: String) -> String { scratch.file(name) }

    /// Runs shell commands in the authority's directory, and returns their output.
    @discardableResult
    package func openssl(_ commands: String) throws -> String {
        try index.withLock { _ in try shell("set -e; cd \(scratch.path)\n\(commands)") }
    }

    private func issued(_ name: String) -> Issued {
        Issued(certificate: file("\(name).pem"), key: file("\(name).key"), chain: file("\(name).chain"))
    }

    @discardableResult
    private func issue(
        _ name: String,
        _ commonName: String,
        _ issuer: Issuer,
        _ extensions: String,
        _ names: String,
        _ validity: (from: String, until: String)?
    ) throws -> Issued {
        let dates = validity.map { "-startdate \($0.from) -enddate \($0.until)" } ?? "-days 30"
        let request = [commonName, issuer.rawValue, extensions, names, dates]
        try requests.withLock { requests in
            if let known = requests[name] {
                precondition(known == request, "two tests issue different certificates named `\(name)`")
                return
            }
            try make(name, commonName, issuer, extensions, names, dates)
            requests[name] = request
        }
        return issued(name)
    }

    private func make(
        _ name: String,
        _ commonName: String,
        _ issuer: Issuer,
        _ extensions: String,
        _ names: String,
        _ dates: String
    ) throws {
        try openssl(
            """
            \(Self.newKey(name))
            openssl req -new -config openssl.cnf -key \(name).key -subj "/CN=\(commonName)" -out \(name).csr
            SAN="\(names)" openssl ca -batch -notext -config openssl.cnf -name \(issuer.rawValue) \
                -extensions \(extensions) \(dates) -in \(name).csr -out \(name).pem
            cat \(name).pem \(issuer == .root ? "" : "intermediate.pem") > \(name).chain
            """
        )
    }

    private static func newKey(_ name: String) -> String {
        "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out \(name).key"
    }

    private static func configuration(in directory: String) -> String {
        """
        SAN = DNS:none
        [req]
        distinguished_name = subject
        [subject]
        [any]
        commonName = supplied
        \(section(.root, directory))
        \(section(.intermediate, directory))
        [authority]
        basicConstraints = critical,CA:TRUE
        keyUsage = critical,keyCertSign,cRLSign,digitalSignature
        subjectKeyIdentifier = hash
        [server]
        basicConstraints = CA:FALSE
        extendedKeyUsage = serverAuth
        subjectAltName = $ENV::SAN
        [client]
        basicConstraints = CA:FALSE
        extendedKeyUsage = clientAuth
        subjectAltName = $ENV::SAN
        """
    }

    private static func section(_ issuer: Issuer, _ directory: String) -> String {
        """
        [\(issuer.rawValue)]
        database = \(directory)/\(issuer.rawValue).index
        new_certs_dir = \(directory)/new
        certificate = \(directory)/\(issuer.rawValue).pem
        private_key = \(directory)/\(issuer.rawValue).key
        default_md = sha256
        default_crl_days = 30
        rand_serial = yes
        unique_subject = no
        policy = any
        """
    }
}
