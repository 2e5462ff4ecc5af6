/** How a secret is made that nobody guesses. A problem with one says so to whoever has none yet. */
export const makesSecret = 'openssl rand -hex 32 makes one'
