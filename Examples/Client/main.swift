import ClientCore

struct Release: Decodable, Sendable {
    let name: String
}

do {
    let release = try await SessionManager.default
        .request("https://example.com/releases/latest", parameters: ["channel": "stable"])
        .validate()
        .decodable(of: Release.self)
    let file = await download("https://example.com/\(release.name).tar.gz")
        .validate()
        .downloadProgress { print($0.fractionCompleted) }
        .response()
    print(file.temporaryURL?.path ?? "", file.error?.localizedDescription ?? "whole")
} catch {
    print(error.localizedDescription)  // could not resolve `example.com`: Name or service not known
}
