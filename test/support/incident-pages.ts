import { readText } from "./repository.ts";

export const incidentPages = ["Verifications are slow", "503s", "Limits do not hold", "Postgres is gone"] as const;

/** An incident page of docs/operations.md: what to type first, and what each finding of doctor means there. */
export function readIncidentPage(heading: (typeof incidentPages)[number]) {
  const sections = readText("docs/operations.md").split(/^## /m);
  const page = sections.find((section) => section.startsWith(`${heading}\n`)) ?? "";
  const [, command = ""] = /^```sh\n(.*?)\n```/ms.exec(page) ?? [];
  const rows = [...page.matchAll(/^\| (`[^|]*`|no problems) \| ([^|]*) \| (.*) \|$/gm)];
  return {
    command,
    rows: rows.map(([, says = "", cause = "", action = ""]) => ({
      ids: Array.from(says.matchAll(/`([\w-]+)`/g), ([, id]) => id as string),
      cause,
      action,
    })),
  };
}
