/** How to make a secret that nobody guesses. Error messages about a missing or weak secret end with it. */
export const makesSecret = 'openssl rand -hex 32 makes one'
