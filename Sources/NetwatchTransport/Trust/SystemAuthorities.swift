internal import CNetwatchCurl
internal import Glibc

/// The certificate authorities that libcurl was built to trust.
package enum SystemAuthorities {
    /// The path of the file with all authorities; `nil` if there is none or it is not readable.
    package static var bundle: String? {
        guard let path = curl_version_info(CURLVERSION_SEVENTH).pointee.cainfo, access(path, R_OK) == 0
        else { return nil }
        return String(cString: path)
    }

    /// The path of the directory with one file for each authority; `nil` if there is none.
    package static var directory: String? {
        curl_version_info(CURLVERSION_SEVENTH).pointee.capath.map { String(cString: $0) }
    }
}
