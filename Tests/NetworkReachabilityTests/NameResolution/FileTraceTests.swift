internal import NetwatchTestSupport
internal import Testing

@testable internal import NetworkReachability

@Suite struct FileTraceTests {
    private let directory: ScratchDirectory

    init() throws {
        directory = try ScratchDirectory()
    }

    private func trace(_ name: String) -> (names: [String], file: String?) {
        let trace = FileTrace(following: directory.file(name))
        let names = trace.names.map { "\($0.directory)/\($0.name)" }
        func relative(_ path: String) -> String {
            path.hasPrefix("\(directory.path)/") ? String(path.dropFirst(directory.path.count + 1)) : path
        }
        return (names.map(relative), trace.file.map(relative))
    }

    @Test func `a file is found by its path`() throws {
        try shell("echo > \(directory.file("plain"))")
        #expect(trace("plain") == (["plain"], "plain"))
        #expect(trace("./plain//") == (["plain"], "plain"))
    }

    @Test func `symbolic links are followed through relative, absolute and linked directories`() throws {
        try shell(
            """
            cd \(directory.path); mkdir -p a/b c; echo > a/b/file
            ln -s ../a/./b c/dir; ln -s dir/../b/file c/relative; ln -s $PWD/c/relative absolute
            """
        )
        #expect(trace("absolute") == (["absolute", "c/relative", "c/dir", "a/b/file"], "a/b/file"))
    }

    @Test func `for a missing file the result is the nearest directory that exists`() throws {
        try shell("cd \(directory.path); mkdir a; ln -s a/b/c/file link; ln -s nowhere dangling; echo > file")
        #expect(trace("link") == (["link", "a/b"], nil))
        #expect(trace("dangling") == (["dangling", "nowhere"], nil))
        #expect(trace("file/below") == (["file"], nil))
    }

    @Test func `a symbolic link loop terminates`() throws {
        try shell("cd \(directory.path); ln -s two one; ln -s one two")
        let (names, file) = trace("one")
        #expect(file == nil)
        #expect(Set(names) == ["one", "two"])
        #expect(names.count == 41)
    }

    @Test func `a directory and a device are ignored`() throws {
        try shell("cd \(directory.path); mkdir dir; ln -s /dev/null null; ln -s / root")
        #expect(trace("dir") == (["dir"], nil))
        #expect(trace("null").file == nil)
        #expect(trace("root").file == nil)
        #expect(FileTrace(following: "/").names == [])
        #expect(FileTrace(following: "").names == [])
        #expect(FileTrace(following: "/../..").file == nil)
    }
}
