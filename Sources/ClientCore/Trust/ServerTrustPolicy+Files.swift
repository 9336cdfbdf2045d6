public import Foundation
internal import Glibc

extension ServerTrustPolicy {
    /// The endings of file names, in capital letters too.
    private static let extensions = [
        "cer", "CER", "crt", "CRT", "der", "DER", "pem", "PEM",
    ]

    /// The certificates of a bundle, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, in the order of
    /// their names. Files without a certificate are skipped; ``certificates(in:)-(URL)`` does not.
    ///
    /// - Parameter bundle: Default: the program's own. On Linux that is the directory that the program is in.
    public static func certificates(in bundle: Bundle = .main) -> [Certificate] {
        paths(in: bundle).flatMap { path in
            (try? Certificate.certificates(contentsOf: URL(fileURLWithPath: path))) ?? []
        }
    }

    /// The keys of ``certificates(in:)-(Bundle)``, and those that are in such a file by themselves in PEM.
    ///
    /// - Parameter bundle: Default: the program's own. On Linux that is the directory that the program is in.
    public static func publicKeys(in bundle: Bundle = .main) -> [PublicKey] {
        paths(in: bundle).flatMap { path in (try? keys(at: URL(fileURLWithPath: path))) ?? [] }
    }

    /// The certificates of a directory, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, in the order
    /// of their names.
    ///
    /// - Parameter directory: A directory; those in it are not looked into.
    /// - Throws: ``InvalidCredential``, which names the first such file without a certificate, or the directory if
    ///   that cannot be read.
    public static func certificates(in directory: URL) throws(InvalidCredential) -> [Certificate] {
        var all: [Certificate] = []
        for file in try files(in: directory) { all += try Certificate.certificates(contentsOf: file) }
        return all
    }

    /// The keys of a directory, from files whose names end in `.cer`, `.crt`, `.der` or `.pem`, in the order of their
    /// names: those of certificates, and those that are in a file by themselves.
    ///
    /// - Parameter directory: A directory; those in it are not looked into.
    /// - Throws: ``InvalidCredential``, which names the first such file without a key, or the directory if that cannot
    ///   be read.
    public static func publicKeys(in directory: URL) throws(InvalidCredential) -> [PublicKey] {
        var all: [PublicKey] = []
        for file in try files(in: directory) { all += try keys(at: file) }
        return all
    }

    /// All of them: the key that will come next is often in the file of the one in use.
    private static func keys(at file: URL) throws(InvalidCredential) -> [PublicKey] {
        let data = try CredentialFile.read(file, as: .publicKey)
        do throws(InvalidCredential) {
            let blocks = PEM.blocks(in: data)?.filter { PublicKey.pemLabels.contains($0.label) } ?? []
            // DER, or nothing of the kind, of which the error tells.
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
        // Foundation lists a file as a directory that has nothing in it.
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
    /// The system's error number beneath a Foundation error; `EIO` where it is lost.
    fileprivate var errno: Int32 {
        let underlying = (self as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        return underlying?.domain == NSPOSIXErrorDomain ? Int32(underlying?.code ?? Int(EIO)) : EIO
    }
}
