//! Results as text: errno names instead of numbers, so that answers read well.

/// Names of the errnos that a ring answers with.
const NAMES: &[(i64, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (3, "ESRCH"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (7, "E2BIG"),
    (9, "EBADF"),
    (10, "ECHILD"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (17, "EEXIST"),
    (18, "EXDEV"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (25, "ENOTTY"),
    (27, "EFBIG"),
    (28, "ENOSPC"),
    (29, "ESPIPE"),
    (30, "EROFS"),
    (32, "EPIPE"),
    (34, "ERANGE"),
    (36, "ENAMETOOLONG"),
    (38, "ENOSYS"),
    (39, "ENOTEMPTY"),
    (40, "ELOOP"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (75, "EOVERFLOW"),
    (77, "EBADFD"),
    (88, "ENOTSOCK"),
    (89, "EDESTADDRREQ"),
    (90, "EMSGSIZE"),
    (92, "ENOPROTOOPT"),
    (93, "EPROTONOSUPPORT"),
    (94, "ESOCKTNOSUPPORT"),
    (95, "EOPNOTSUPP"),
    (97, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"),
    (103, "ECONNABORTED"),
    (105, "ENOBUFS"),
    (104, "ECONNRESET"),
    (106, "EISCONN"),
    (107, "ENOTCONN"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (114, "EALREADY"),
    (115, "EINPROGRESS"),
    (116, "ESTALE"),
    (125, "ECANCELED"),
    (130, "EOWNERDEAD"),
];

/// A result as text: `5`, or `-EINVAL`.
pub fn res(r: impl Into<i64>) -> String {
    let r = r.into();
    if !(-4095..0).contains(&r) {
        return r.to_string();
    }
    match NAMES.iter().find(|(n, _)| *n == -r) {
        Some((_, name)) => format!("-{name}"),
        None => r.to_string(),
    }
}

/// `ok` for any success, the errno's name otherwise: for results that name a descriptor.
pub fn ok(r: impl Into<i64>) -> String {
    let r = r.into();
    if r >= 0 {
        "ok".into()
    } else {
        res(r)
    }
}
