internal import Foundation
internal import FoundationNetworking
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// Cookies in a file that only its user can read.
@Suite(.timeLimit(.minutes(5))) struct CookieFileTests {
    private let scratch: ScratchDirectory
    private let path: String

    init() throws {
        scratch = try ScratchDirectory()
        path = scratch.file("state/cookies.json")
    }

    private func jar(_ file: CookieFile) -> CookieJar {
        CookieJar(file.storage, for: file.storage, policy: .always, file: file)
    }

    private func store(_ fields: String..., in file: CookieFile, from url: String = "https://example.org/")
        throws
    {
        jar(file).store(fields, from: try #require(URL(string: url)), mainDocumentURL: nil)
    }

    private func field(_ file: CookieFile, for url: String = "https://example.org/") throws -> String? {
        jar(file).field(for: try #require(URL(string: url)))
    }

    private func mode(of path: String) throws -> mode_t {
        var status = stat()
        try #require(lstat(path, &status) == 0)
        return status.st_mode & 0o7777
    }

    private func reason(_ path: String) -> CookieFileError.Reason? {
        do throws(CookieFileError) {
            _ = try CookieFile(path)
            return nil
        } catch {
            return error.reason
        }
    }

    // MARK: Restarts

    @Test func `cookies, their attributes and their order survive a restart`() throws {
        do {
            let file = try CookieFile(path)
            try store("one=1; Max-Age=600", "two=2; Max-Age=600; Secure; HttpOnly", in: file)
            try store("three=3; Max-Age=600; Path=/", "gone=4", in: file)
            try store("one=5; Max-Age=600", "sub=6; Max-Age=600; Domain=example.org", in: file)
        }
        let file = try CookieFile(path)
        #expect(try field(file) == "one=5; two=2; three=3; sub=6")
        #expect(try field(file, for: "http://example.org/") == "one=5; three=3; sub=6")
        #expect(try field(file, for: "https://www.example.org/") == "sub=6")
        let two = file.storage.cookies?.first { $0.name == "two" }
        #expect(two?.isHTTPOnly == true)
    }

    @Test func `bytes that are not UTF-8 survive a restart`() throws {
        let value = ExactText.decode([0x61, 0x3d, 0xe9])
        do { try store(value + "; Max-Age=600", in: try CookieFile(path)) }
        let sent = try #require(try field(try CookieFile(path)))
        #expect(ExactText.encode(sent) == [0x61, 0x3d, 0xe9])
    }

    @Test func `a cookie that the program has stored survives a restart`() throws {
        let properties: [HTTPCookiePropertyKey: Any] = [
            .name: "a", .value: "b", .domain: "example.org", .path: "/",
            .expires: Date(timeIntervalSinceNow: 600), .secure: "TRUE",
        ]
        do {
            let file = try CookieFile(path)
            file.storage.setCookie(try #require(HTTPCookie(properties: properties)))
            try file.save()
        }
        let file = try CookieFile(path)
        #expect(try field(file) == "a=b")
        #expect(try field(file, for: "http://example.org/") == nil)
    }

    @Test(arguments: [Double.infinity, .nan])
    func `a cookie whose expiry date is not finite does not prevent that others are written`(
        seconds: TimeInterval
    ) throws {
        let properties: [HTTPCookiePropertyKey: Any] = [
            .name: "endless", .value: "1", .domain: "example.org", .path: "/",
            .expires: Date(timeIntervalSinceReferenceDate: seconds),
        ]
        do {
            let file = try CookieFile(path)
            file.storage.setCookie(try #require(HTTPCookie(properties: properties)))
            try store("a=b; Max-Age=600", in: file)
            try file.save()
        }
        #expect(try field(try CookieFile(path)) == "a=b")
    }

    @Test func `expired cookies and cookies for public suffixes are not read`() throws {
        func record(_ domain: String, _ seconds: TimeInterval) -> CookieRecord {
            let expires = Date(timeIntervalSinceNow: seconds)
            return CookieRecord(
                name: "a",
                value: "b",
                domain: domain,
                path: "/",
                expires: expires,
                isSecure: false,
                isHTTPOnly: false,
                created: 1
            )
        }
        let records = [record(".org", 600), record("example.org", -1), record(".example.org", 600)]
        try makePrivateDirectory(scratch.file("state"))
        try PrivateFile.replace(path, with: Array(CookieRecords(records).data), isDurable: false)
        #expect(try CookieFile(path).storage.cookies?.map(\.domain) == [".example.org"])
    }

    // MARK: The file

    @Test func `the file and its directory are private`() throws {
        try store("a=b; Max-Age=600", in: try CookieFile(path))
        #expect(try mode(of: path) == 0o600)
        #expect(try mode(of: path + ".lock") == 0o600)
        #expect(try mode(of: scratch.file("state")) == 0o700)
        #expect(FileManager.default.fileExists(atPath: path + ".new") == false)
    }

    @Test(arguments: [0o644, 0o640, 0o604, 0o620] as [mode_t])
    func `a file that other users can access is refused and unchanged`(mode: mode_t) throws {
        try store("a=b; Max-Age=600", in: try CookieFile(path))
        let contents = try Data(contentsOf: URL(fileURLWithPath: path))
        chmod(path, mode)
        #expect(reason(path) == .notPrivate)
        #expect(try self.mode(of: path) == mode)
        chmod(path, 0o600)
        #expect(try field(try CookieFile(path)) == "a=b")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == contents)
    }

    @Test func `a symbolic link is refused`() throws {
        try makePrivateDirectory(scratch.file("state"))
        let target = try scratch.write(Array("{}".utf8), to: "target")
        chmod(target, 0o600)
        symlink(target, path)
        #expect(reason(path) == .notPrivate)
    }

    @Test(arguments: [
        "{", "{}", "a=b", #"{"version":2,"cookies":[]}"#, #"{"version":1,"cookies":[{"name":"a"}]}"#,
    ])
    func `a damaged file is an error and unchanged`(contents: String) throws {
        try makePrivateDirectory(scratch.file("state"))
        try scratch.write(Array(contents.utf8), to: "state/cookies.json")
        chmod(path, 0o600)
        #expect(reason(path) == .damaged)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == contents)
    }

    /// As after a power failure.
    @Test func `an empty file has no cookies`() throws {
        try makePrivateDirectory(scratch.file("state"))
        try scratch.write([], to: "state/cookies.json")
        chmod(path, 0o600)
        #expect(try CookieFile(path).storage.cookies?.isEmpty == true)
    }

    @Test func `a full disk loses no cookie in memory`() throws {
        let scratch = scratch
        let outcome = try onSmallDisk(at: scratch.path) { () -> [String?] in
            let path = scratch.file("cookies.json")
            guard let file = try? CookieFile(path), let url = URL(string: "https://example.org/") else {
                return []
            }
            let jar = CookieJar(file.storage, for: file.storage, policy: .always, file: file)
            jar.store(["first=1; Max-Age=600"], from: url, mainDocumentURL: nil)
            let before = try? String(contentsOfFile: path, encoding: .utf8)
            let value = String(repeating: "x", count: 4000)
            let large = (0..<40).map { "c\($0)=\(value); Max-Age=600" }
            jar.store(large, from: url, mainDocumentURL: nil)
            let after = try? String(contentsOfFile: path, encoding: .utf8)
            var failure: String?
            do { try file.save() } catch { failure = "\(error)" }
            let count = file.storage.cookies?.count
            for cookie in file.storage.cookies ?? [] where cookie.name != "first" {
                file.storage.deleteCookie(cookie)
            }
            let saved: Void? = try? file.save()
            return [
                before == after ? before : nil, failure, count.map(String.init), saved.map { _ in "saved" },
            ]
        }
        try #require(outcome.count == 4)
        #expect(outcome[0]?.contains("first") == true)
        #expect(outcome[1]?.contains("No space left on device") == true)
        #expect(outcome[2] == "41")
        #expect(outcome[3] == "saved")
    }

    // MARK: Processes and sessions

    @Test func `a file is used by one process at a time`() throws {
        do {
            let file = try CookieFile(path)
            #expect(reason(path) == .inUse)
            #expect(LockFile.owner(namedIn: path + ".lock") == getpid())
            let other = Process()
            other.executableURL = URL(fileURLWithPath: "/usr/bin/flock")
            other.arguments = ["--nonblock", path + ".lock", "true"]
            try other.run()
            other.waitUntilExit()
            #expect(other.terminationStatus == 1)
            try store("a=b; Max-Age=600", in: file)
        }
        #expect(try field(try CookieFile(path)) == "a=b")
    }

    @Test func `sessions of one storage write the file concurrently`() async throws {
        let server = try ScriptedServer { request in
            let name = request.target.dropFirst()
            return .respond(status: 200, headers: [.init("Set-Cookie", "\(name)=1; Max-Age=600; Path=/")])
        }
        let storage = try HTTPCookieStorage.file(at: URL(fileURLWithPath: path))
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = storage
        let settings = SessionSettings(configuration)
        let engine = try TransferEngine()
        let sessions = (0..<2).map { _ in SessionManager(engine: engine, settings: settings) }
        let requests = (0..<40).map { sessions[$0 % 2].request("\(server.url)/c\($0)") }
        for request in requests { #expect(await request.response().error == nil) }
        withExtendedLifetime(sessions) {}
        // The storage has its file until the process ends, so the file is read without it.
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let names = try #require(CookieRecords(data: data)).cookies.map(\.name)
        #expect(Set(names) == Set((0..<40).map { "c\($0)" }))
        #expect(try mode(of: path) == 0o600)
        try storage.saveToFile()
    }

    @Test func `only jars of the same storage exclude each other`() throws {
        let memory = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let file = try CookieFile(path)
        let jars = [jar(file), jar(file), CookieJar(memory, policy: .always)]
        let (states, isDone) = (Recorder<Bool>(), Gate())
        jars[0].lock.mutex.withLock { _ in
            Thread.detachNewThread {
                for jar in jars { states.record(jar.isBusy) }
                isDone.open()
            }
            isDone.wait()
        }
        #expect(states.values == [true, true, false])
        #expect(!jars[1].isBusy)
    }

    @Test func `a storage without a file cannot be saved`() throws {
        let storage = try #require(URLSessionConfiguration.ephemeral.httpCookieStorage)
        let error = #expect(throws: CookieFileError.self) { try storage.saveToFile() }
        #expect(error?.reason == .noFile)
    }

    private static let stateDirectories: [(environment: [String: String], directory: String)] = [
        (["XDG_STATE_HOME": "/state"], "/state"),
        (["XDG_STATE_HOME": "state"], NSHomeDirectory() + "/.local/state"),
        ([:], NSHomeDirectory() + "/.local/state"),
    ]

    @Test(arguments: stateDirectories)
    func `each program has its own file`(environment: [String: String], directory: String) {
        let path = CookieFile.standardPath(environment: environment, program: "/usr/bin/tool")
        #expect(path == directory + "/tool/cookies.json")
    }
}

private func makePrivateDirectory(_ path: String) throws {
    try #require(mkdir(path, 0o700) == 0)
}
