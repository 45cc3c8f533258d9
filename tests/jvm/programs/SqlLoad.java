package org.example.programs;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Random;

/** Transactions and joins in a database in memory, H2. Arguments: seconds. */
public final class SqlLoad {
    private static final int ACCOUNTS = 20_000;

    private SqlLoad() {}

    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:load")) {
            create(connection);
            Random random = new Random(1);
            Deadline.repeat(arguments, round -> {
                // A round is as much work as the one before.
                if (round % 20 == 0) {
                    forget(connection);
                }
                for (int transfer = 0; transfer < 200; transfer++) {
                    transfer(connection, random.nextInt(ACCOUNTS), random.nextInt(ACCOUNTS));
                }
                join(connection, round % 100);
            });
        }
    }

    private static void create(Connection connection) throws SQLException {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.execute("create table account(id int primary key, branch int, owner varchar, balance bigint)");
            statement.execute("create index by_branch on account(branch)");
            statement.execute("create table entry(id identity, account int, amount bigint)");
        }
        String insert = "insert into account values (?, ?, ?, 1000)";
        try (PreparedStatement statement = connection.prepareStatement(insert)) {
            for (int id = 0; id < ACCOUNTS; id++) {
                statement.setInt(1, id);
                statement.setInt(2, id % 100);
                statement.setString(3, "owner " + id);
                statement.execute();
            }
        }
        connection.commit();
    }

    private static void forget(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("truncate table entry");
        }
    }

    private static void transfer(Connection connection, int from, int to) throws SQLException {
        change(connection, from, -1);
        change(connection, to, 1);
        connection.commit();
    }

    private static void change(Connection connection, int account, long amount) throws SQLException {
        try (PreparedStatement update =
                        connection.prepareStatement("update account set balance = balance + ? where id = ?");
                PreparedStatement insert =
                        connection.prepareStatement("insert into entry(account, amount) values (?, ?)")) {
            update.setLong(1, amount);
            update.setInt(2, account);
            update.executeUpdate();
            insert.setInt(1, account);
            insert.setLong(2, amount);
            insert.executeUpdate();
        }
    }

    private static void join(Connection connection, int branch) throws SQLException {
        String query = "select a.owner, count(*), sum(e.amount) from account a join entry e on e.account = a.id"
                + " where a.branch = ? group by a.owner order by 3 desc, 1";
        try (PreparedStatement statement = connection.prepareStatement(query)) {
            statement.setInt(1, branch);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    rows.getLong(3);
                }
            }
        }
    }
}
