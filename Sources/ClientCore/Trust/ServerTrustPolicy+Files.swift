public import Foundation
internal import Glibc

extension ServerTrustPolicy {
    /// The file name extensions of certificate files, in lower and upper case.
    private static let extensions = [
        "cer", "CER", "crt", "CRT", "der", "DER", "pem", "PEM",
    ]

    /// Returns the certificates of a bundle, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, sorted
    /// by name. A file without a certificate is skipped, whereas ``certificates(in:)-(URL)`` throws an error.
    ///
    /// - Parameter bundle: The bundle. Default: `Bundle.main`, which on Linux is the directory that contains the
    ///   program.
    public static func certificates(in bundle: Bundle = .main) -> [Certificate] {
        paths(in: bundle).flatMap { path in
            (try? Certificate.certificates(contentsOf: URL(fileURLWithPath: path))) ?? []
        }
    }

    /// Returns the public keys of a bundle, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, sorted by
    /// name: the keys of certificates, and keys without a certificate. A file without a key is skipped.
    ///
    /// - Parameter bundle: The bundle. Default: `Bundle.main`, which on Linux is the directory that contains the
    ///   program.
    public static func publicKeys(in bundle: Bundle = .main) -> [PublicKey] {
        paths(in: bundle).flatMap { path in (try? keys(at: URL(fileURLWithPath: path))) ?? [] }
    }

    /// Returns the certificates of a directory, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`,
    /// sorted by name.
    ///
    /// - Parameter directory: A directory; subdirectories are not searched.
    /// - Throws: ``InvalidCredential``, which names the first of these files that contains no certificate. If the
    ///   directory cannot be read, the error names the directory.
    public static func certificates(in directory: URL) throws(InvalidCredential) -> [Certificate] {
        var all: [Certificate] = []
        for file in try files(in: directory) { all += try Certificate.certificates(contentsOf: file) }
        return all
    }

    /// Returns the public keys of a directory, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, sorted
    /// by name: the keys of certificates, and keys without a certificate.
    ///
    /// - Parameter directory: A directory; subdirectories are not searched.
    /// - Throws: ``InvalidCredential``, which names the first of these files that contains no key. If the directory
    ///   cannot be read, the error names the directory.
    public static func publicKeys(in directory: URL) throws(InvalidCredential) -> [PublicKey] {
        var all: [PublicKey] = []
        for file in try files(in: directory) { all += try keys(at: file) }
        return all
    }

    /// Returns all keys of a file. A file often contains both the current key of a server and its next key.
    private static func keys(at file: URL) throws(InvalidCredential) -> [PublicKey] {
        let data = try CredentialFile.read(file, as: .publicKey)
        do throws(InvalidCredential) {
            let blocks = PEM.blocks(in: data)?.filter { PublicKey.pemLabels.contains($0.label) } ?? []
            // Data without a PEM block of a key is DER or invalid. If it is invalid, `PublicKey` throws the error.
            guard !blocks.isEmpty else { return [try PublicKey(data: data)] }
            var keys: [PublicKey] = []
            for block in blocks { keys.append(try PublicKey(data: block.text)) }
            return keys
        } catch {
            throw error.naming(file.path)
        }
    }

    private static func paths(in bundle: Bundle) -> [String] {
        extensions.flatMap { bundle.paths(forResourcesOfType: $0, inDirectory: nil) }.sorted()
    }

    private static func files(in directory: URL) throws(InvalidCredential) -> [URL] {
        let unreadable = { (errno: Int32) in
            InvalidCredential(.certificate, .unreadable(errno: errno), file: directory.path)
        }
        var isDirectory: ObjCBool = false
        // Foundation lists a regular file as an empty directory.
        if FileManager.default.fileExists(atPath: directory.path, isDirectory: &isDirectory),
            !isDirectory.boolValue
        {
            throw unreadable(ENOTDIR)
        }
        do {
            return try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
                .filter { extensions.contains($0.pathExtension) }
                .sorted { $0.path < $1.path }
        } catch {
            throw unreadable(error.errno)
        }
    }
}

extension Error {
    /// The `errno` underlying a Foundation error; `EIO` if there is none.
    fileprivate var errno: Int32 {
        let underlying = (self as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        return underlying?.domain == NSPOSIXErrorDomain ? Int32(underlying?.code ?? Int(EIO)) : EIO
    }
}
