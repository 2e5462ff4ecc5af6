import type { Databases } from '../support/postgres.ts'

/** A database whose clock a test sets, and whose answers about it take as long as the test says. Answers its URL. */
export async function makeSkewed(postgres: Databases): Promise<string> {
  const url = await postgres.database()
  const name = new URL(url).pathname.slice(1)
  for (const statement of [
    'CREATE TABLE public.skew (ms float8, answer_s float8)',
    'INSERT INTO public.skew VALUES (0, 0)',
    `CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$
     DECLARE at record;
     BEGIN
       SELECT * INTO at FROM public.skew;
       IF at.answer_s > 0 THEN PERFORM pg_sleep(at.answer_s); END IF;
       RETURN pg_catalog.clock_timestamp() + at.ms * interval '1 ms';
     END $$`,
    // In front of the server's own.
    `ALTER DATABASE ${name} SET search_path = public, pg_catalog`,
  ]) {
    await postgres.query(statement, url)
  }
  return url
}

/** Its clock jumps to `ms` away from the right time. */
export async function jumpTo(postgres: Databases, url: string, ms: number, answerS = 0): Promise<void> {
  await postgres.query(`UPDATE public.skew SET ms = ${ms}, answer_s = ${answerS}`, url)
}
