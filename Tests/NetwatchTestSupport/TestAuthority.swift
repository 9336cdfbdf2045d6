internal import Glibc
internal import Synchronization

/// A test certificate authority, using openssl(1): a root, an intermediate, and the certificates issued by them. All
/// files are removed with the last reference.
package final class TestAuthority: Sendable {
    /// The paths of a certificate and its key in PEM.
    package struct Issued: Sendable {
        package let certificate: String
        package let key: String
        /// The path of the certificate followed by the intermediate, as a server sends them.
        package let chain: String

        /// The same without the intermediate.
        package var alone: Issued { Issued(certificate: certificate, key: key, chain: certificate) }
    }

    /// The authority that signs a certificate.
    package enum Issuer: String, Sendable {
        case root
        case intermediate
    }

    package static let isAvailable = access("/usr/bin/openssl", X_OK) == 0

    private static let only = Result { try TestAuthority() }

    /// Returns the authority shared by all tests of the process.
    package static func shared() throws -> TestAuthority { try only.get() }

    package let scratch: ScratchDirectory
    /// openssl-ca(1) has an index, which only one process at a time may write.
    private let index = Mutex(())
    /// The arguments for each name. Tests share the files of a name, which must not change while a server reads them.
    private let requests = Mutex<[String: [String]]>([:])

    /// The certificates of the authorities, in PEM.
    package var root: String { file("root.pem") }
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

    /// Issues a server's certificate.
    ///
    /// - Parameters:
    ///   - name: The name of its files, and its common name.
    ///   - names: The subject alternative names: `DNS:example.com,IP:127.0.0.1`; `nil` for `name`.
    ///   - issuer: The authority that signs it.
    ///   - validity: The start and end in the format of openssl-ca(1); `nil` for a month from now.
    package func server(
        _ name: String,
        for names: String? = nil,
        by issuer: Issuer = .intermediate,
        validity: (from: String, until: String)? = nil
    ) throws -> Issued {
        try issue(name, name, issuer, "server", names ?? "DNS:\(name)", validity)
    }

    /// Issues a client's certificate.
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

    /// Revokes a certificate issued by the intermediate.
    package func revoke(_ issued: Issued) throws {
        try openssl("openssl ca -config openssl.cnf -name intermediate -revoke \(issued.certificate)")
    }

    /// Creates the intermediate's current revocation list, in PEM.
    ///
    /// - Parameter extra: Additional arguments of openssl-ca(1).
    package func revocationList(_ name: String, _ extra: String = "") throws -> String {
        try openssl("openssl ca -config openssl.cnf -name intermediate -gencrl \(extra) -out \(name)")
        return file(name)
    }

    /// Creates the current OCSP response for a certificate, for a server to staple.
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

    /// Runs commands in the authority's directory.
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
                precondition(known == request, "two tests want different certificates named \(name)")
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
