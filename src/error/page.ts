/** Statuses of pages for people. */
export const PAGE = {
  shown: 200,
  elsewhere: 303,
  signInFailed: 401,
  forbidden: 403,
  notFound: 404,
  tooLarge: 413,
  refused: 422,
  tooMany: 429,
  unavailable: 503,
} as const;
